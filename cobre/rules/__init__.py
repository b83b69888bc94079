"""Rules that a study chooses by name: when to stop, how to weigh outcomes, which cuts to keep.

A rule is one module of :mod:`cobre.rules.stopping`, :mod:`cobre.rules.risk` or :mod:`cobre.rules.selection`:
its keys in the case format, its checks and its mathematics. :mod:`cobre.rules.contracts` states what each
kind of rule must provide; a module that is put into one of the packages is found by itself.
"""
