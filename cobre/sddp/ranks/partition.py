"""How forward passes are split over ranks: contiguous blocks, the first ones longer by one (TRN-10)."""

from __future__ import annotations


def block_of(total: int, parts: int, part: int) -> tuple[int, int]:
    """Return the half-open range ``[start, stop)`` of items that belong to ``part``.

    Parameters
    ----------
    total
        Number of items, >= 0; may be smaller than ``parts`` (the last parts then get nothing).
    parts
        Number of parts, >= 1.
    part
        Which part, 0 <= part < parts.
    """
    quotient, remainder = divmod(total, parts)
    start = part * quotient + min(part, remainder)
    return start, start + quotient + (1 if part < remainder else 0)
