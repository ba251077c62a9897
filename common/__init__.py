"""Networks, body models, the training engine and shared utilities."""
import os

__version__ = '2.0.0'

# Pixels of the largest picture that OpenCV decodes: it looks at the size that a file states before it takes memory, and
# reads this limit when it is imported.
os.environ.setdefault('OPENCV_IO_MAX_IMAGE_PIXELS', '200000000')
os.environ.setdefault('OPENCV_LOG_LEVEL', 'FATAL')  # what is wrong with a picture is told once, with its path
