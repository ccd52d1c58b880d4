"""Storage engines: the contract in ``base``, and the engines that implement it."""
