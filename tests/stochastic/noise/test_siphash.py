from __future__ import annotations

import numpy as np
import pytest
from oracle.noise import MASK_64, siphash
from oracle.noise import forward_seed as forward_seed_oracle
from oracle.noise import opening_seed as opening_seed_oracle

from cobre.stochastic.noise.siphash import forward_seed, opening_seed

BASES = [0, 1, 42, 2**32, 2**63 - 1, 2**63, MASK_64]


def test_oracle_gives_the_published_vector_of_siphash_2_4():
    # Appendix A of the SipHash paper: key 00..0f, message 00..0e.
    assert siphash(bytes(range(15)), bytes(range(16)), c_rounds=2, d_rounds=4) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("base", BASES)
def test_opening_seed_is_siphash_13_of_16_bytes(base):
    for opening, stage_id in [(0, 0), (1, 0), (0, 1), (9, 59), (2**31, 7), (2**32 - 1, 2**32 - 1)]:
        assert opening_seed(np.uint64(base), opening, stage_id) == opening_seed_oracle(
            base, opening, stage_id
        )


@pytest.mark.parametrize("base", BASES)
def test_forward_seed_is_siphash_13_of_20_bytes(base):
    for step in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (50, 191, 59), (7, 2**31 - 1, 3), (2**32 - 1,) * 3]:
        assert forward_seed(np.uint64(base), *step) == forward_seed_oracle(base, *step)


def test_integer_type_of_the_arguments_does_not_matter():
    expected = forward_seed_oracle(42, 3, 5, 7)
    assert forward_seed(42, 3, 5, 7) == expected
    assert forward_seed(np.int64(42), np.uint32(3), np.int32(5), np.uint64(7)) == expected
    assert opening_seed(42, np.uint32(3), np.int32(5)) == opening_seed_oracle(42, 3, 5)
