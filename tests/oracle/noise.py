"""The noise chain once more, in plain Python integers and floats, written from the definitions."""

from __future__ import annotations

import math
import struct

MASK_32 = 2**32 - 1
MASK_64 = 2**64 - 1
MASK_128 = 2**128 - 1


def siphash(message: bytes, key: bytes = bytes(16), c_rounds: int = 1, d_rounds: int = 3) -> int:
    """SipHash-c-d of the paper (Aumasson and Bernstein, 2012), over bytes."""

    def turn(word: int, bits: int) -> int:
        return ((word << bits) | (word >> (64 - bits))) & MASK_64

    def sip_round() -> None:
        v[0] = (v[0] + v[1]) & MASK_64
        v[2] = (v[2] + v[3]) & MASK_64
        v[1] = turn(v[1], 13) ^ v[0]
        v[3] = turn(v[3], 16) ^ v[2]
        v[0] = turn(v[0], 32)
        v[2] = (v[2] + v[1]) & MASK_64
        v[0] = (v[0] + v[3]) & MASK_64
        v[1] = turn(v[1], 17) ^ v[2]
        v[3] = turn(v[3], 21) ^ v[0]
        v[2] = turn(v[2], 32)

    k0, k1 = struct.unpack("<QQ", key)
    initial = struct.unpack(">QQQQ", b"somepseudorandomlygeneratedbytes")
    v = [initial[0] ^ k0, initial[1] ^ k1, initial[2] ^ k0, initial[3] ^ k1]
    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        for _ in range(c_rounds):
            sip_round()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(d_rounds):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Pcg64:
    """PCG XSL-RR 128/64 on Python integers."""

    MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645

    def __init__(self, seed: int) -> None:
        words = []
        for _ in range(8):
            seed = (seed * 6364136223846793005 + 11634580027462260723) & MASK_64
            word = (((seed >> 18) ^ seed) >> 27) & MASK_32
            turn = seed >> 59
            words.append(((word >> turn) | (word << (32 - turn))) & MASK_32)
        raw = struct.pack("<8I", *words)
        self.inc = int.from_bytes(raw[16:], "little") | 1
        self.state = (int.from_bytes(raw[:16], "little") + self.inc) & MASK_128
        self.step()

    def step(self) -> None:
        self.state = (self.state * self.MULTIPLIER + self.inc) & MASK_128

    def u64(self) -> int:
        self.step()
        folded = (self.state >> 64) ^ (self.state & MASK_64)
        turn = self.state >> 122
        return ((folded >> turn) | (folded << (64 - turn))) & MASK_64

    def u32(self) -> int:
        return self.u64() & MASK_32

    def below(self, n: int) -> tuple[int, str]:
        """Return the value and the way it was found: ``plain``, ``kept`` or ``carried``."""
        hi, lo = divmod(self.u32() * n, 2**32)
        if lo <= 2**32 - n:
            return hi, "plain"
        if lo + ((self.u32() * n) >> 32) >= 2**32:
            return hi + 1, "carried"
        return hi, "kept"


def _float_from_bits(exponent: int, fraction: int) -> float:
    """The float of exponent 2^exponent with the given 52 bits of fraction."""
    (value,) = struct.unpack("<d", struct.pack("<Q", ((1023 + exponent) << 52) | fraction))
    return value


class Ziggurat:
    """Normal numbers from a table of edges ``x`` and heights ``f`` (257 each), counting the ways taken."""

    def __init__(self, x: list[float], f: list[float]) -> None:
        self.x = x
        self.f = f
        self.ways = {"layer": 0, "tail": 0, "wedge": 0, "rejected": 0}

    def draw(self, rng: Pcg64) -> float:
        epsilon = 2.0**-52
        while True:
            bits = rng.u64()
            i = bits & 255
            u = _float_from_bits(1, bits >> 12) - 3.0
            x = u * self.x[i]
            if abs(x) < self.x[i + 1]:
                self.ways["layer"] += 1
                return x
            if i == 0:
                self.ways["tail"] += 1
                return self._tail(rng, u, epsilon)
            if self.f[i + 1] + (self.f[i] - self.f[i + 1]) * ((rng.u64() >> 11) * 2.0**-53) < math.exp(
                -x * x / 2.0
            ):
                self.ways["wedge"] += 1
                return x
            self.ways["rejected"] += 1

    def _tail(self, rng: Pcg64, u: float, epsilon: float) -> float:
        r = self.x[1]
        while True:
            x = math.log(_float_from_bits(0, rng.u64() >> 12) - (1.0 - epsilon / 2.0)) / r
            y = math.log(_float_from_bits(0, rng.u64() >> 12) - (1.0 - epsilon / 2.0))
            if -2.0 * y >= x * x:
                return x - r if u < 0.0 else r - x


def opening_seed(base: int, opening: int, stage_id: int) -> int:
    return siphash(struct.pack("<QII", base, opening, stage_id))


def forward_seed(base: int, iteration: int, scenario: int, stage: int) -> int:
    return siphash(struct.pack("<QIII", base, iteration, scenario, stage))


def stage_seed(base: int, stage_id: int) -> int:
    return siphash(struct.pack("<QI", base, stage_id))


def fresh_seed(base: int, iteration: int, scenario: int, group: int) -> int:
    return siphash(struct.pack("<BQIII", 1, base, iteration, scenario, group))


def quantile(p: float) -> float:
    """Beasley-Springer-Moro, coefficients highest power last, summed by Horner's rule."""
    p = min(max(p, 2.2250738585072014e-308), 1.0 - 2.220446049250313e-16)
    if p <= 1e-20:
        return -8.21

    def horner(coefficients: list[float], x: float) -> float:
        total = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            total = total * x + coefficient
        return total

    y = p - 0.5
    if abs(y) < 0.42:
        above = [2.50662823884, -18.61500062529, 41.39119773534, -25.44106049637]
        below = [1.0, -8.47351093090, 23.08336743743, -21.06224101826, 3.13082909833]
        return y * horner(above, y * y) / horner(below, y * y)
    moro = [0.3374754822726147, 0.9761690190917186, 0.1607979714918209, 0.0276438810333863]
    moro += [0.0038405729373609, 0.0003951896511349, 0.0000321767881768, 0.0000002888167364]
    moro += [0.0000003960315187]
    z = horner(moro, math.log(-math.log(p if y <= 0 else 1.0 - p)))
    return -z if y <= 0 else z


def shuffled(rng: Pcg64, n: int) -> list[int]:
    items = list(range(n))
    for i in reversed(range(1, n)):
        j = rng.below(i + 1)[0]
        items[i], items[j] = items[j], items[i]
    return items


def uniform_52(rng: Pcg64) -> float:
    return _float_from_bits(0, rng.u64() >> 12) - 1.0


def latin(seed: int, n: int, dim: int) -> list[list[float]]:
    rng = Pcg64(seed)
    points = [[0.0] * dim for _ in range(n)]
    for d in range(dim):
        samples = [(k + uniform_52(rng)) / n for k in range(n)]
        for sample, opening in zip(samples, shuffled(rng, n), strict=True):
            points[opening][d] = quantile(sample)
    return points


def latin_point(strata_seed: int, draw_seed: int, scenario: int, n: int, dim: int) -> list[float]:
    strata, draw = Pcg64(strata_seed), Pcg64(draw_seed)
    return [quantile((shuffled(strata, n)[scenario] + uniform_52(draw)) / n) for _ in range(dim)]


def sobol(seed: int, plain: list[list[int]]) -> list[list[float]]:
    """Scramble 32-bit Sobol points (point, dimension) linearly."""
    rng = Pcg64(seed)
    scramble = [(rng.u32() | 1, rng.u32()) for _ in plain[0]]
    return [
        [quantile((a * x + b) % 2**32 / 2**32) for x, (a, b) in zip(point, scramble, strict=True)]
        for point in plain
    ]


def halton(seed: int, n: int, primes: list[int]) -> list[list[float]]:
    rng = Pcg64(seed)
    tables = []
    for p in primes:
        digits = 1
        while p**digits <= n - 1:
            digits += 1
        tables.append([shuffled(rng, p) for _ in range(digits)])
    points = []
    for index in range(n):
        row = []
        for p, table in zip(primes, tables, strict=True):
            u, weight, rest, place = 0.0, 1.0 / p, index, 0
            while rest:
                rest, digit = divmod(rest, p)
                u += table[place][digit] * weight
                weight /= p
                place += 1
            row.append(quantile(u))
        points.append(row)
    return points
