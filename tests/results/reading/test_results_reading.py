"""Results read back: tables, the rows and columns that are asked for, and what is missing or damaged."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from builders.small_results import SCENARIOS, write_simulation

import cobre
from cobre.errors import CobreError, OutputError, ValidationError


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return cobre.results.load(write_simulation(tmp_path_factory.mktemp("run")))


def test_tables_are_there_by_name_and_as_attributes(results):
    simulation = results.simulation
    assert list(simulation) == ["buses", "costs", "hydros", "thermals", "paths", "scenario_summary"]
    assert simulation.hydros is simulation["hydros"] is results["hydros"] is results["simulation/hydros"]
    assert len(simulation.hydros) == SCENARIOS * 3 * 2
    assert "hydros" in simulation
    assert simulation.get("contracts") is None
    assert (simulation.complete, results.training.exists) == (True, False)
    assert simulation.metadata == {"status": "complete"}


def test_short_and_html_forms_hold_names_and_escape_them(results):
    assert repr(results) == (
        f"Results({str(results.directory)!r}: training none, simulation complete, 6 tables)"
    )
    assert repr(results.simulation.hydros) == "Table('hydros': 24 rows, 45 columns)"
    for shown in (results, results.simulation, results.simulation.hydros):
        assert "<table>" in shown._repr_html_()
    assert "turbined_m3s (m3/s)" in results.simulation.hydros._repr_html_()


def test_columns_have_units_and_descriptions(results):
    hydros = results.simulation.hydros
    assert hydros.unit("storage_final_hm3") == "hm3"
    described = {row["column"]: row for row in hydros.describe().to_pylist()}
    assert described["generation_mw"] == {
        "column": "generation_mw",
        "type": "f64",
        "unit": "MW",
        "description": "Mean generation",
        "nullable": False,
    }
    assert hydros.schema.field("generation_mw").metadata == {
        b"unit": b"MW",
        b"description": b"Mean generation",
    }


def test_a_dictionary_of_the_run_counts_before_what_this_version_knows(tmp_path):
    output = write_simulation(tmp_path)
    path = output / "simulation" / "dictionaries" / "variables.csv"
    path.write_text("file,column,type,unit,description,nullable\nhydros,generation_mw,f64,kW,Other,false\n")
    assert cobre.results.load(output).simulation.hydros.unit("generation_mw") == "kW"
    path.unlink()
    assert cobre.results.load(output).simulation.hydros.unit("generation_mw") == "MW"


def test_rows_are_chosen_by_ids_names_and_conditions(results):
    hydros = results.simulation.hydros
    chosen = hydros.to_arrow(["storage_final_hm3", "hydro_name"], entity="Serra", stage=2, scenario=[0, 3])
    assert chosen.to_pydict() == {"storage_final_hm3": [100.0, 103.0], "hydro_name": ["Serra", "Serra"]}
    assert hydros.entities == {4: "Serra", 9: "Vale"}
    assert hydros.count(entity=[4, "Vale"], block=1) == SCENARIOS * 2
    assert hydros.count(entity="9") == SCENARIOS * 3
    buses = results.simulation.buses
    found = buses.to_arrow(["scenario_id", "deficit_mwh"], where="deficit_mw > 0 and bus_name = 'North'")
    assert found.to_pydict() == {"scenario_id": [2, 3], "deficit_mwh": [300.0, 1000.0]}
    assert buses.count(where="start_date >= 2024-02-01") == SCENARIOS * 2
    assert buses.count(where=ds.field("spot_price") == 40.0) == 1
    assert results.simulation.thermals.count(where="is_anticipated != true") == SCENARIOS * 3


def test_pieces_hold_all_rows_in_order(results):
    hydros = results.simulation.hydros
    pieces = pa.Table.from_batches(list(hydros.batches(["scenario_id", "storage_final_hm3"])))
    assert pieces.equals(hydros.to_arrow(["scenario_id", "storage_final_hm3"]))
    assert pieces["scenario_id"].to_pylist() == sorted(pieces["scenario_id"].to_pylist())
    assert hydros.head(2, ["hydro_id"]).to_pydict() == {"hydro_id": [4, 9]}


def test_a_cube_has_an_axis_for_each_dimension(results):
    cube = results.simulation.hydros.cube("stored_energy_final_mwh")
    assert cube.dims == ("scenario", "stage", "block", "entity")
    assert cube.names == ("Serra", "Vale")
    assert cube.labels["stage"].tolist() == [1, 2]
    energy = cube["stored_energy_final_mwh"]
    assert energy.shape == (4, 2, 2, 2)
    np.testing.assert_array_equal(energy[:, 0, 1, 0], [30.0, 31.0, 32.0, 33.0])
    np.testing.assert_array_equal(energy[3, 1, 0], [30.0, 0.0])
    assert np.isnan(energy[:, 1, 1]).all()  # the second stage has one block
    assert cube.dates.tolist() == [np.datetime64("2024-01-01").item(), np.datetime64("2024-02-01").item()]


def test_stages_are_in_the_order_of_their_dates(tmp_path):
    output = write_simulation(tmp_path)
    for part in sorted((output / "simulation" / "costs").iterdir()):
        table = pq.read_table(part)
        renamed = pa.array([8 - stage for stage in table["stage_id"].to_pylist()], pa.int32())
        pq.write_table(table.set_column(1, table.schema.field(1), renamed), part)
    cube = cobre.results.load(output).simulation.costs.cube("discount_factor")
    assert cube.labels["stage"].tolist() == [7, 6]
    np.testing.assert_array_equal(cube["discount_factor"][0], [1.0, 0.5])


def test_rows_that_ids_do_not_tell_apart_make_no_cube(tmp_path):
    output = write_simulation(tmp_path)
    parts = sorted((output / "simulation" / "thermals").iterdir())
    parts[1].write_bytes(parts[0].read_bytes())
    with pytest.raises(CobreError, match="several rows of thermals have the same") as caught:
        cobre.results.load(output).simulation.thermals.cube("generation_mw")
    assert caught.value.kind == "RowsNotDistinct"


def test_data_frames_of_pandas(results):
    pytest.importorskip("pandas")
    frame = results.simulation.buses.to_pandas(["stage_id", "bus_name", "spot_price"], scenario=0)
    assert frame.groupby("bus_name").spot_price.max().to_dict() == {"North": 100.0, "South": 7.0}


def test_data_frames_of_polars(results):
    pytest.importorskip("polars")
    frame = results.simulation.buses.to_polars(["spot_price"], entity="North")
    assert frame["spot_price"].max() == 100.0


def test_datasets_of_xarray(results):
    pytest.importorskip("xarray")
    hydros = results.simulation.hydros.to_xarray()
    assert hydros.storage_final_hm3.dims == ("scenario", "stage", "block", "entity")
    assert hydros.storage_final_hm3.sel(entity="Serra", stage=2, block=0).mean() == 101.5
    assert hydros.storage_final_hm3.attrs["units"] == "hm3"
    assert hydros.hydro_id.values.tolist() == [4, 9]
    assert hydros.start_date.dt.month.values.tolist() == [1, 2]
    assert results.simulation.costs.to_xarray("total_cost").total_cost.dims == ("scenario", "stage")
    states = results.simulation.thermals.to_xarray(stage=1).operative_state_code
    assert (states.dtype, int(states.min())) == (np.int8, 2)


@pytest.mark.parametrize("method", ["to_pandas", "to_polars", "to_xarray"])
def test_a_missing_library_is_named(results, monkeypatch, method):
    library = method.removeprefix("to_")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(CobreError, match=f"pip install {library}") as caught:
        getattr(results.simulation.hydros, method)()
    assert caught.value.kind == "ExtraMissing"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda table: table.to_arrow(["generation"]), "did you mean generation_mw"),
        (lambda table: table.to_arrow(entity="Sera"), "has no hydro 'Sera' .did you mean Serra"),
        (lambda table: table.to_arrow(where="deficit >"), "cannot be read"),
        (lambda table: table.to_arrow(where="generation_mw > much"), "'much' is no value of column"),
        (lambda table: table.to_arrow(where="unknown > 1"), "no column 'unknown'"),
        (lambda table: table.cube("hydro_name"), "holds no numbers"),
    ],
)
def test_what_is_wrongly_asked_for_is_refused(results, ask, message):
    with pytest.raises(ValidationError, match=message):
        ask(results.simulation.hydros)


def test_results_of_cobre_rs_have_a_file_for_each_scenario_and_names_elsewhere(tmp_path):
    output = write_simulation(tmp_path)
    simulation = output / "simulation"
    for directory in (simulation / "hydros", simulation / "buses"):
        rows = pq.read_table(directory).drop_columns(["start_date"])
        shutil.rmtree(directory)
        for scenario in range(SCENARIOS):
            place = directory / f"scenario_id={scenario:04d}"
            place.mkdir(parents=True)
            chosen = rows.filter(ds.field("scenario_id") == scenario)
            names = [name for name in chosen.column_names if name.endswith("_name")]
            pq.write_table(chosen.drop_columns(names), place / "data.parquet")
    shutil.move(simulation / "hydros", simulation / "violations" / "generic")
    dictionaries = output / "training" / "dictionaries"
    dictionaries.mkdir(parents=True)
    (dictionaries / "entities.csv").write_text("entity_type_code,entity_id,name\n2,0,North\n2,1,South\n")
    read = cobre.results.load(output).simulation
    assert len(read["generic_violations"]) == len(read.buses) == SCENARIOS * 6
    assert read.buses.entities == {0: "North", 1: "South"}
    assert read.buses.to_arrow(["spot_price"], entity="North", scenario=3, stage=2).to_pylist() == [
        {"spot_price": 40.0}
    ]
    north = read.metrics.deficit(("bus",)).rows()[0]
    assert (north["bus_name"], north["expected_unserved_mwh"]) == ("North", 325.0)


def test_what_is_not_there_is_named(results, tmp_path):
    with pytest.raises(OutputError, match="did you mean hydros"):
        results.simulation["hydro"]
    with pytest.raises(AttributeError, match="did you mean hydros"):
        _ = results.simulation.hydro
    with pytest.raises(OutputError, match=r"no training in .*run 'cobre train CASE --output"):
        _ = results.training["convergence"]
    with pytest.raises(ValidationError, match="table scenario_summary has no stages"):
        results.simulation["scenario_summary"].to_arrow(stage=1)
    with pytest.raises(OutputError, match="there is no directory"):
        cobre.results.load(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="there are no results"):
        cobre.results.load(tmp_path)
    (tmp_path / ".simulation.partial").mkdir()
    with pytest.raises(OutputError, match="cobre simulate CASE --resume"):
        cobre.results.load(tmp_path)
    write_simulation(tmp_path / "case" / "output")
    assert cobre.results.load(tmp_path / "case").directory == tmp_path / "case" / "output"
    with pytest.raises(OutputError, match=r"did you mean .*output\?"):
        cobre.results.load(tmp_path / "case" / "output" / "simulation")


def test_damaged_files_are_named(tmp_path):
    output = write_simulation(tmp_path)
    part = output / "simulation" / "buses" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:200])
    with pytest.raises(OutputError, match=r"buses.* cannot be read") as caught:
        cobre.results.load(output).simulation.buses.to_arrow()
    assert caught.value.kind == "OutputCorrupted"
    (output / "simulation" / "metadata.json").write_text("[]")
    with pytest.raises(OutputError, match=r"metadata\.json cannot be read"):
        _ = cobre.results.load(output).simulation.metadata


def test_reading_loads_no_compiler(results):
    code = (
        "import sys, cobre; assert 'pyarrow' not in sys.modules; "
        f"r = cobre.results.load({str(results.directory)!r}); r.simulation.metrics.deficit(); "
        "assert 'numba' not in sys.modules and 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
