"""Semidefinite programs in files: the sparse SDPA format, `.dat-s`, gzipped too."""

from gramian.io.sdpa import read_sdpa, write_sdpa

__all__ = ["read_sdpa", "write_sdpa"]
