"""Checksums that several protocols share."""

from __future__ import annotations


def _crc16_table() -> tuple[int, ...]:
    found = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
        found.append(crc)
    return tuple(found)


_CRC16_TABLE = _crc16_table()  # noise on a line costs a CRC per byte


def crc8(data: bytes) -> int:
    """Return the CRC-8 with the polynomial 07, the initial value 0 and no reflection."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07 if crc & 0x80 else crc << 1) & 0xFF
    return crc


def crc16(data: bytes, initial: int = 0) -> int:
    """Return the CRC-16 with the reflected polynomial A001: CRC-16/ARC with the initial value 0, the CRC of Modbus with
    FFFF.
    """
    crc = initial
    for byte in data:
        crc = crc >> 8 ^ _CRC16_TABLE[(crc ^ byte) & 0xFF]
    return crc


def xor(data: bytes) -> int:
    """Return the exclusive or of all bytes."""
    check = 0
    for byte in data:
        check ^= byte
    return check
