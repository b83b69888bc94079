NAME        
ROWS
 N  Obj     
 E  hydro_balance[plant_0]
 E  bus_balance[bus_0,_block_0]
 G  hydro_outflow_min[plant_0,_block_0]
COLUMNS
    hydro_storage_final[plant_0]  hydro_balance[plant_0]  1
    future_cost  Obj       1
    hydro_spillage[plant_0,_block_0]  Obj       0.0017578125
    hydro_spillage[plant_0,_block_0]  hydro_balance[plant_0]  2.592
    hydro_spillage[plant_0,_block_0]  hydro_outflow_min[plant_0,_block_0]  1
    hydro_turbined[plant_0,_block_0]  hydro_balance[plant_0]  2.592
    hydro_turbined[plant_0,_block_0]  bus_balance[bus_0,_block_0]  0.8
    hydro_turbined[plant_0,_block_0]  hydro_outflow_min[plant_0,_block_0]  1
    hydro_outflow_min_violation[plant_0,_block_0]  Obj       175.78125
    hydro_outflow_min_violation[plant_0,_block_0]  hydro_outflow_min[plant_0,_block_0]  1
    thermal_generation[thermal_0,_block_0]  Obj       1.7578125
    thermal_generation[thermal_0,_block_0]  bus_balance[bus_0,_block_0]  1
    bus_deficit[bus_0,_1,_block_0]  Obj       87.890625
    bus_deficit[bus_0,_1,_block_0]  bus_balance[bus_0,_block_0]  1
    bus_deficit[bus_0,_2,_block_0]  Obj       527.34375
    bus_deficit[bus_0,_2,_block_0]  bus_balance[bus_0,_block_0]  1
    bus_excess[bus_0,_block_0]  Obj       0.0017578125
    bus_excess[bus_0,_block_0]  bus_balance[bus_0,_block_0]  -1
RHS
    RHS_V     hydro_balance[plant_0]  -93.68
    RHS_V     bus_balance[bus_0,_block_0]  46.2
    RHS_V     hydro_outflow_min[plant_0,_block_0]  5
BOUNDS
 LO BOUND     hydro_storage_final[plant_0]  10
 UP BOUND     hydro_storage_final[plant_0]  400
 FX BOUND     future_cost  0
 UP BOUND     hydro_turbined[plant_0,_block_0]  75
 UP BOUND     thermal_generation[thermal_0,_block_0]  30
 UP BOUND     bus_deficit[bus_0,_1,_block_0]  50
ENDATA
