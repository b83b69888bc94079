"""Help texts of the commands.

No line breaks inside a paragraph: typer would keep them.
"""

from __future__ import annotations

ROOT = (
    "Plan hydrothermal power systems by stochastic dual dynamic programming (SDDP). "
    "A case directory describes the system, its stages and its uncertainty; cobre trains a policy, a set of "
    "cuts that values stored water, and writes it with its convergence as Parquet files.\n\n"
    "Start a case:    cobre init DIR --template toy\n\n"
    "Check a case:    cobre validate CASE\n\n"
    "Inflow models:   cobre stochastic CASE\n\n"
    "Train a policy:  cobre train CASE --iterations 100 --output results\n\n"
    "Follow a run:    cobre watch results\n\n"
    "Look into it:    cobre policy show results/policy\n\n"
    "Operate by it:   cobre simulate CASE --output results\n\n"
    "All of it:       cobre run CASE\n\n"
    "See what happens: cobre show results hydros --quantiles --columns storage_final_hm3\n\n"
    "A page of it:    cobre report CASE/output"
)
TRAIN = (
    "Train a policy for a case and write it, with its convergence, to the output directory.\n\n"
    "The first run compiles the kernels, which takes half a minute or so ('cobre warmup' does so ahead); "
    "later runs load them. Ctrl-C or SIGTERM stops all ranks at the end of the iteration and keeps the "
    "results so far; a second one stops at once."
)
SIMULATE = (
    "Operate the system under a policy in many scenarios and write what happens: costs, storage, flows, "
    "generation, prices, deficit by scenario, stage and block, in OUTPUT/simulation.\n\n"
    "How many scenarios, and where their noise comes from, is in config.json (simulation). Ctrl-C or SIGTERM "
    "stops all ranks when the scenarios at hand are complete; --resume goes on with them."
)
RUN = (
    "Do what the case asks for: train a policy and, where simulation.enabled is true or --scenarios is "
    "given, simulate it. With training.enabled false, simulate the policy that OUTPUT holds."
)
SHOW = (
    "Print results of a run: a list of its tables, or rows of one of them, chosen by entity, stage, scenario "
    "or a condition; with --quantiles mean and quantiles over scenarios, by stage, block and entity.\n\n"
    "Columns that are 0 or empty in all rows are left out for people; JSON and CSV have all of them."
)
COMPARE = (
    "Report what two runs differ in: bounds, verdict, expected cost with its confidence, cost by component, "
    "deficit, energy, stored energy, marginal costs. Where both simulated the same scenarios the "
    "uncertainty of the difference is that of the differences by scenario."
)
STOCHASTIC = (
    "Fit the inflow models of a case and draw its opening tree, without training, and report both: where "
    "they come from, orders and coefficients, how well generated inflows repeat the observed ones, the "
    "openings. The page with plots needs plotly: pip install 'cobre-sddp\\[report]'."
)
INIT = (
    "Write a new case to start from: small, complete, ready to train, with a README.md that describes it. "
    "A directory that is not empty is refused."
)
SCHEMA = (
    "Write what every file of a case may hold: JSON Schemas (draft 2020-12) of the JSON files, and the "
    "columns, types and units of the Parquet files."
)
POLICY = (
    "Look into stored policies. A policy is what training leaves: cuts that value the state at the end of "
    "every stage. It is a directory: OUTPUT/policy, a checkpoint such as OUTPUT/checkpoints/latest, or "
    "what cobre-rs writes (manifest.bin, cuts/).\n\n"
    "What is it?          cobre policy show results/policy\n\n"
    "The same as that?    cobre policy compare results/policy other/policy\n\n"
    "For cobre-rs:        cobre policy convert results/policy out --to cobre-rs --case CASE"
)
POLICY_SHOW = (
    "Report what a policy directory or checkpoint holds: its study, stages and cuts, the components of "
    "the state, iterations, bounds and their kind, digest. All files are read and checked against their "
    "digests."
)
POLICY_CONVERT = (
    "Write a policy in another format, or the policy of a checkpoint on its own.\n\n"
    "Files of cobre-rs hold neither the dates of stages nor the study, and identify water in transit by "
    "where it flows to: from or to that format give the case that the policy was trained for. The "
    "lower bound of what comes from cobre-rs is an estimate: nothing in the files proves it."
)
POLICY_COMPARE = (
    "Report whether two policies are the same, to the last bit of every cut, and otherwise what differs: "
    "study, state, graph, cuts by stage, bounds by iteration. Times, hosts and versions do not count; "
    "neither does what only one of the two formats holds.\n\n"
    "Exit code 0: the same. 5: they differ."
)
WARMUP = (
    "Compile the kernels into the cache, or check that they are there.\n\n"
    "For images and clusters: the first training then starts at once. The cache is COBRE_CACHE_DIR, else "
    "XDG_CACHE_HOME/cobre, else ~/.cache/cobre."
)
LAUNCH = (
    "Run copies of a command, each as one rank of a communicator.\n\n"
    "A Python program finds its rank with cobre.comm.create_communicator(). When one copy fails the others "
    "are ended; the exit code is that of the first failure, 128 plus the signal's number if a signal ended "
    "it. SIGINT and SIGTERM are passed on."
)
EXIT_CODES = (
    "Exit codes: 0 success; 1 wrong arguments; 2 wrong run configuration (environment, output directory); "
    "3 wrong input (the case, a policy); 4 failure of the solver, the communication or cobre itself; "
    "130 stopped by Ctrl-C; 143 ended by SIGTERM before there were results (with results: 0)."
)
