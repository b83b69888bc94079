"""Pages for people: complete in one file, which opens anywhere without a network.

:mod:`~cobre.results.pages.page` is what all pages share, :mod:`~cobre.results.pages.figures` what figures are
made of. :mod:`~cobre.results.pages.run_page` is the report of a run, from the files of its output directory,
and :mod:`~cobre.results.pages.stochastic_page` that of a study's uncertainty.
"""
