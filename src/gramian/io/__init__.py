"""Semidefinite programs in files of the sparse SDPA format, `.dat-s` and `.dat-s.gz`."""

from gramian.io.sdpa import read_sdpa, write_sdpa

__all__ = ["read_sdpa", "write_sdpa"]
