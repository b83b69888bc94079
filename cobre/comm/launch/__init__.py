"""Starting ranks as processes of this machine, and watching over them."""

from cobre.comm.launch.command import run_command
from cobre.comm.launch.launched import ask, progress
from cobre.comm.launch.launching import launch

__all__ = ["ask", "launch", "progress", "run_command"]
