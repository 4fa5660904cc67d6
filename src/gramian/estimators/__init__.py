"""The shared half of fitting: time limits, storage, selection paths and active sets."""
