"""JANUS: the test vector, the code, the waveform and the receiver, against closed forms and slow twins.

The vectors are from CMRE's encoder ``janus-tx`` 3.0.5. The rates of lost packets are from the theory of non-coherent
detection, see docs/evidence/hydrophones.md.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from wavesim_sdk.checksums import crc8
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.janus import (
    JanusReceiver,
    JanusReception,
    Packet,
    ParameterSet,
    Transmission,
    cargo_size,
    coding,
    message,
    packet,
    waveform,
)

VECTOR = "3210000000000055", "50120e81083e0100700981500c0600500901"
HOPS = "2 4 8 3 6 12 11 9 5 10 7 1 6 7 7 12 3 0 2 12 4 6 4 2 10 10 6 8 0 1 6 2 3 2 1 3 1 0 5 4"
CARGO_HI = "011100000110001011101111001011100110000101110001"  # janus-tx --packet-cargo Hi
FS = 48_000
C = 1500.0


def _random_packet(rng: np.random.Generator) -> Packet:
    return Packet(
        int(rng.integers(256)), int(rng.integers(64)), int(rng.integers(1 << 34)), mobile=bool(rng.integers(2))
    )


def _noise(rng: np.random.Generator, count: int, ec_n0: float, sampling: float = FS) -> npt.NDArray[np.float64]:
    """Noise for tones of amplitude 1: the energy of a chip is 1/160 s times half the mean of the squared envelope."""
    energy = 0.5 / 160 * (1 - 2 / 16 * 5 / 8)
    return math.sqrt(energy * sampling / 2 / 10 ** (ec_n0 / 10)) * rng.standard_normal(count)


def _received(
    t: Transmission, lead: float, speed: float, length: float, paths: tuple[tuple[float, float], ...] = ((0, 1),)
) -> npt.NDArray[np.float64]:
    """The signal at a receiver that the source approaches at ``speed``. ``paths`` are delays and amplitudes."""
    times = np.arange(round(length * FS)) / FS
    parts = [a * t.pressure((times - lead - delay) * (1 + speed / C)) for delay, a in paths]
    return np.asarray(np.sum(parts, axis=0))


def _receive(samples: npt.NDArray[np.float64], sampling: float = FS) -> list[JanusReception]:
    receiver = JanusReceiver(sampling)
    return receiver.push(samples) + receiver.finish()


# ------------------------------------------------------------------ packet


def test_the_test_vector_bit_for_bit() -> None:
    data = Packet().to_bytes()
    assert data.hex() == VECTOR[0]
    assert np.packbits(coding.encode(data)).tobytes().hex() == VECTOR[1]
    assert waveform.hops(40).tolist() == [int(h) for h in HOPS.split()]
    assert "".join(map(str, coding.encode(b"Hi"))) == CARGO_HI


def test_fields_return_from_their_bytes_and_any_wrong_bit_is_found() -> None:
    every = [
        Packet(255, 63, (1 << 34) - 1, mobile=True, receives=False, forwards=True),
        Packet(0, 0, 0),
        Packet(3, 7, (1 << 26) - 1, interval=127, repeat=True),
        Packet(3, 7, 5, interval=0),
    ]
    for fields in every:
        data = fields.to_bytes()
        assert Packet.from_bytes(data) == fields
        for bit in range(64):
            wrong = bytearray(data)
            wrong[bit // 8] ^= 1 << bit % 8
            with pytest.raises(InvalidArgument, match="check sum"):
                Packet.from_bytes(bytes(wrong))


def test_another_version_and_values_that_do_not_fit_are_refused() -> None:
    head = bytes([0x42, *bytes(6)])
    with pytest.raises(InvalidArgument, match="expected JANUS version 3, got version 4"):
        Packet.from_bytes(head + bytes([crc8(head)]))
    with pytest.raises(InvalidArgument, match="8 bytes, got 3"):
        Packet.from_bytes(b"abc")
    for wrong, text in (
        ({"class_id": 256}, r"class_id does not fit into 8 bits: expected 0..255, got 256"),
        ({"application": -1}, "application does not fit"),
        ({"data": 1 << 34}, "data does not fit into 34 bits"),
        ({"data": 1 << 26, "interval": 0}, "data does not fit into 26 bits"),
        ({"interval": 128}, "interval does not fit into 7 bits"),
        ({"repeat": True}, "no effect without an interval"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            Packet(**wrong)


@pytest.mark.parametrize(("length", "size"), [(0, 0), (1, 1), (3, 4), (5, 8), (9, 16), (480, 480)])
def test_messages_have_one_of_the_sizes_of_the_table_and_reserve_the_channel(length: int, size: int) -> None:
    fields, cargo = message(b"x" * length, station=201)
    assert (len(cargo), cargo_size(fields), cargo.rstrip(b"\0")) == (size, size, b"x" * length)
    assert fields.data >> 18 == 201
    if size:
        assert fields.interval is not None
        duration = coding.chip_count(size) / 160
        assert duration <= packet.reservation_time(fields.interval) < 1.13 * duration


def test_a_message_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="has 481 bytes, and JANUS cargo of class 16 has at most 480: split"):
        message(b"x" * 481)
    with pytest.raises(InvalidArgument, match=r"lasts 770 s in this band, .* for at most 600 s: shorten the message"):
        message(bytes(480), chip=0.1)
    with pytest.raises(InvalidArgument, match="station"):
        message(b"x", station=256)


def test_reservation_times_of_the_standard() -> None:
    known = {
        0: 0.0033211,
        1: 0.00365321,
        59: 0.91928543,
        60: 1.0,
        61: 1.11233537,
        84: 10.0,
        103: 60.0,
        126: 545.45670235,
        127: 600.0,
    }
    for index, seconds in known.items():
        assert packet.reservation_time(index) == pytest.approx(seconds, rel=1e-6)


# ------------------------------------------------------------------ code


def _shift_register(data: bytes) -> list[int]:
    """Encode bit by bit, and interleave chip by chip."""
    register, coded = 0, []
    for bit in [*(int(b) for byte in data for b in f"{byte:08b}"), *[0] * 8]:
        register = (register >> 1) | bit << 8
        coded += [(register & 0o753).bit_count() % 2, (register & 0o561).bit_count() % 2]
    n = len(coded)
    step = next(q for q in itertools.count(5) if n / q < q and n % q and all(q % p for p in range(2, q)))
    return [coded[step * k % n] for k in range(n)]


def test_the_encoder_equals_a_shift_register() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 4, 8, 16, 40):
        data = rng.bytes(size)
        assert coding.encode(data).tolist() == _shift_register(data)


def test_the_decoder_finds_the_most_likely_of_all_words() -> None:
    rng = np.random.default_rng(2)
    words = [bytes([b]) for b in range(256)]
    signs = 2.0 * np.array([_shift_register(w) for w in words]) - 1
    soft = rng.standard_normal((200, 32))
    best = (signs @ soft.T).argmax(axis=0)
    assert coding.decode(soft) == [words[b] for b in best]
    with pytest.raises(InvalidArgument, match="finite soft decisions"):
        coding.decode(np.full(144, np.nan))


def test_lost_packets_equal_the_theory_of_soft_decisions() -> None:
    rng = np.random.default_rng(3)
    for ec_n0, lost, count in ((3, 0.67, 300), (4, 0.20, 500), (5, 0.011, 600)):
        sent = [_random_packet(rng).to_bytes() for _ in range(count)]
        chips = np.array([coding.encode(s) for s in sent])
        pressure = (rng.standard_normal((count, 144, 2)) + 1j * rng.standard_normal((count, 144, 2))) / math.sqrt(2)
        pressure[np.arange(count)[:, None], np.arange(144), chips] += 10 ** (ec_n0 / 20)
        energy = np.abs(pressure) ** 2
        wrong = sum(a != b for a, b in zip(coding.decode(energy[..., 1] - energy[..., 0]), sent, strict=True))
        # the table is from 1500 packets
        assert wrong / count == pytest.approx(lost, abs=3.5 * math.sqrt(lost * (1 - lost) * (1 / count + 1 / 1500)))


# ------------------------------------------------------------------ waveform


@pytest.mark.parametrize("sampling", [44_100, 48_000, 96_000, 250_000])
def test_each_chip_is_a_tone_that_begins_at_phase_zero(sampling: int) -> None:
    sent = Transmission(Packet())
    samples = sent.samples(sampling, silence=0.0)
    assert len(samples) / sampling == pytest.approx(1.1, abs=1 / sampling)
    chips = [int(b) for b in f"{0xAEC7CD20:032b}"] + coding.encode(Packet().to_bytes()).tolist()
    for i in (0, 1, 31, 32, 100, 175):
        at = np.arange(math.ceil(i * sampling / 160), math.floor((i + 1) * sampling / 160))
        x = at / sampling - i / 160
        tone = 11520 - 13 * 160 + 320 * int(waveform.hops(176)[i]) + 160 * chips[i]
        edge = np.clip(np.minimum(x, 1 / 160 - x) * 16 * 160, 0, 1)
        expected = np.sin(np.pi / 2 * edge) ** 2 * np.cos(2 * np.pi * tone * x)
        assert np.abs(samples[at] - expected).max() < 1e-9
    assert min(waveform.tones(sent.chips)) >= 9440
    assert max(waveform.tones(sent.chips)) <= 13440


def test_wake_up_tones_precede_the_preamble() -> None:
    samples = Transmission(Packet(), wake_up=True).samples(FS)
    begin = round(5 / 160 * FS)
    for i, tone in enumerate((9600, 11520, 13440)):
        part = samples[begin + i * 1200 : begin + (i + 1) * 1200]
        spectrum = np.abs(np.fft.rfft(part))
        assert np.argmax(spectrum) * FS / 1200 == tone
    silent = samples[begin + 3600 : begin + 3600 + round(0.4 * FS)]
    assert not silent.any()
    assert _receive(samples)[0].start == pytest.approx((5 + 12) / 160 + 0.4, abs=1e-4)


def test_other_bands_and_sampling_rates_that_do_not_fit() -> None:
    assert (ParameterSet().centre, ParameterSet().bandwidth, ParameterSet().spacing) == (11520, 4160, 160)
    assert ParameterSet(30_000).bandwidth == 10_000
    band = ParameterSet(28_000, 8_320)
    sent = Transmission(Packet(data=77), parameters=band)
    receiver = JanusReceiver(96_000, band)
    assert [r.packet.data for r in receiver.push(sent.samples(96_000)) + receiver.finish()] == [77]
    with pytest.raises(InvalidArgument, match="22050 Hz is too low for JANUS around 11520 Hz: use at least 27840 Hz"):
        Transmission(Packet()).samples(22_050)
    with pytest.raises(InvalidArgument, match="22050 Hz is too low"):
        JanusReceiver(22_050)
    with pytest.raises(InvalidArgument, match=r"whole number of Hz, got 44100\.5 Hz"):
        JanusReceiver(44_100.5)
    with pytest.raises(InvalidArgument, match="bandwidth between 260 Hz and the centre frequency"):
        ParameterSet(1000, 5000)


# ------------------------------------------------------------------ receiver


@pytest.mark.parametrize("speed", [-5.0, -2.0, 5.0])
def test_time_and_doppler_are_found_in_noise(speed: float) -> None:
    rng = np.random.default_rng(round(10 * speed + 100))
    for lead in (0.3012, 0.4177):
        sent = _random_packet(rng)
        samples = _received(Transmission(sent), lead, speed, 1.6)
        (got,) = _receive(samples + _noise(rng, len(samples), 7.0))
        assert got.packet == sent
        assert got.speed == pytest.approx(speed, abs=1.0)
        assert got.start == pytest.approx(lead, abs=5e-4)
        assert got.ec_n0 == pytest.approx(7.0, abs=1.5)


@pytest.mark.long
def test_the_search_costs_at_most_one_decibel_at_one_per_cent_loss() -> None:
    """Soft decisions at known time lose 1 % at 5 dB; with the search, 200 packets at 6 dB must lose at most 1 %."""
    rng = np.random.default_rng(4)
    lost = 0
    for _ in range(200):
        sent = _random_packet(rng)
        samples = _received(Transmission(sent), 0.1 + rng.uniform(0, 0.1), rng.uniform(-5, 5), 1.35)
        lost += sent not in [r.packet for r in _receive(samples + _noise(rng, len(samples), 6.0))]
    assert lost <= 2


def test_a_recording_of_several_packets_in_pieces_of_any_size() -> None:
    rng = np.random.default_rng(5)
    first, (second, cargo) = _random_packet(rng), message(b"second message", 9)
    samples = _received(Transmission(first), 0.2, 1.0, 5.5) + 0.5 * _received(
        Transmission(second, cargo), 1.45, -3.0, 5.5
    )
    samples += _noise(rng, len(samples), 18.0)
    at_once = _receive(samples)
    assert [(r.packet, r.cargo) for r in at_once] == [(first, b""), (second, cargo)]
    receiver, pieces, at = JanusReceiver(FS), [], 0
    while at < len(samples):
        size = int(rng.integers(1, 70_000))
        pieces += receiver.push(samples[at : at + size])
        at += size
    assert pieces + receiver.finish() == at_once


def test_cargo_is_followed_while_the_speed_changes() -> None:
    """Twelve seconds of cargo at 1 m/s, then 1.6 m/s: 2 ms of timing error without tracking, a third of a chip."""
    rng = np.random.default_rng(6)
    sent = Transmission(*message(rng.bytes(112) + b"!" * 8))
    times = np.arange(round((sent.end + 0.6) * FS)) / FS
    emitted = (times - 0.2) * (1 + 1.0 / C) + np.maximum(times - 6.0, 0) * 0.6 / C
    (got,) = _receive(sent.pressure(emitted) + _noise(rng, len(times), 8.0))
    assert got.cargo == sent.cargo


def test_cargo_that_the_recording_cuts_off_is_reported() -> None:
    sent = Transmission(*message(b"x" * 64))
    samples = sent.samples(FS)
    (got,) = _receive(samples[: len(samples) // 2])
    assert (got.packet, got.cargo) == (sent.packet, None)


@pytest.mark.parametrize("delay", [0.002, 0.0105, 0.031])
def test_two_paths(delay: float) -> None:
    rng = np.random.default_rng(7)
    sent = _random_packet(rng)
    samples = _received(Transmission(sent), 0.2, 2.0, 1.7, ((0, 1.0), (delay, -0.7)))
    assert [r.packet for r in _receive(samples + _noise(rng, len(samples), 12.0))] == [sent]


def test_noise_contains_no_packet_and_costs_no_memory() -> None:
    rng = np.random.default_rng(8)
    receiver = JanusReceiver(FS)
    assert not [r for _ in range(20) for r in receiver.push(rng.standard_normal(FS))]
    assert (receiver.finish(), receiver.detections) == ([], 0)
    assert len(receiver._signal) < 4 * receiver.rate


def test_samples_that_are_not_numbers_are_refused_with_their_time() -> None:
    receiver = JanusReceiver(FS)
    receiver.push(np.zeros(FS))
    bad = np.zeros(FS)
    bad[[4800, 4801]] = np.nan
    with pytest.raises(InvalidArgument, match=r"2 samples are NaN or infinite, the first one at 1.100000 s: remove"):
        receiver.push(bad)
    with pytest.raises(InvalidArgument, match="one channel"):
        receiver.push(np.zeros((10, 2)))
    with pytest.raises(InvalidArgument, match="max_speed"):
        JanusReceiver(FS, max_speed=-1)
