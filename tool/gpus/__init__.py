"""The checks of tool/check_gpus.py."""
