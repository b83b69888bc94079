"""What tests are made of: case directories, studies in memory, random systems.

Case directories
    ``case_files`` (a smallest case that features are added to, and the writer of files), ``base_case`` (a
    small valid case of which tests change one file), ``base_case_extras`` and ``base_case_time`` (its
    optional files), ``spoilt`` (files with one thing spoilt, and their judge),
    ``rich_case`` (a file of nearly every kind), ``large_case`` (any size), ``uncertain_cases``
    (history of inflows), ``boundary_policy`` (a policy that values the end), ``published_cases``
    (systems of the literature), ``guide_cases`` (those of docs/), ``shared_cases`` (public
    cases beside the repository).
Studies in memory
    ``studies`` (cascades of any size), ``small_studies`` (LPs to be solved by hand), ``scenario_studies``
    (uncertainty alone).
Random systems
    ``random_case`` (function of a seed).
What the package draws and fits, in the words of the oracle
    ``realisations``.
"""
