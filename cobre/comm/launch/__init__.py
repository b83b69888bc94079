"""Starting ranks as processes of this machine, and watching over them."""

from cobre.comm.launch.command import run_command
from cobre.comm.launch.launched import ask, progress
from cobre.comm.launch.launching import launch
from cobre.comm.launch.pool import RankPool

__all__ = ["RankPool", "ask", "launch", "progress", "run_command"]
