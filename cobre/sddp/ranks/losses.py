"""What to do when a job has lost a rank."""

from __future__ import annotations

from typing import Final

AFTER_A_LOSS: Final = (
    "if it wrote checkpoints (--checkpoint-every), run the same command with --resume to go on from the last"
)
"""While it trained."""

AFTER_A_LOSS_SIMULATING: Final = (
    "run the same command with --resume to go on from the blocks of scenarios that are complete"
)
"""While it simulated."""
