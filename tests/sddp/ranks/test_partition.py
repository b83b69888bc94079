import itertools

from hypothesis import given
from hypothesis import strategies as st

from cobre.sddp.ranks.partition import block_of


@given(total=st.integers(0, 500), parts=st.integers(1, 70))
def test_blocks_cover_everything_once_and_evenly(total, parts):
    blocks = [block_of(total, parts, part) for part in range(parts)]
    assert blocks[0][0] == 0
    assert blocks[-1][1] == total
    assert all(previous[1] == following[0] for previous, following in itertools.pairwise(blocks))
    sizes = [stop - start for start, stop in blocks]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
