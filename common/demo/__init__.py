"""The parts of `main/demo.py`: pictures and boxes in; placement in the camera; meshes, numbers and pictures out."""
