"""What every part of the library uses: clock, memory, random numbers, parameters, storage."""
