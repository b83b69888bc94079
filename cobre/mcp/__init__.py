"""A server of the Model Context Protocol, with which agents work on the studies below a root.

``cobre mcp`` starts it. Importing this package is light: the protocol's SDK (extra ``mcp``) is imported by
:mod:`cobre.mcp.server` and the two transports, what works on studies by the processes that do the work.

:mod:`~cobre.mcp.paths` confines every path to the root; :mod:`~cobre.mcp.contract` states what a tool is;
``tools/`` holds them by subject; ``jobs/`` runs trainings and simulations in processes that outlive the
server.
"""
