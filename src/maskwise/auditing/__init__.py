"""Which labels of a dataset are doubtful: checks of its truth, and runs that agree against it."""
