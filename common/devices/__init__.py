"""GPUs, processes, and the wrappers that use several of them."""
