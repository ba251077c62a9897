"""What tool/benchmark.py measures, one module per part."""
