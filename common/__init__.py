"""Networks, body models, the training engine and shared utilities."""
import os

__version__ = '2.0.0'

# OpenCV reads these when it is imported: the pixels of the largest image that it decodes (it checks the size that a
# file states before it takes memory), and silence, since an image that cannot be read is reported once, with its path.
os.environ.setdefault('OPENCV_IO_MAX_IMAGE_PIXELS', '200000000')
os.environ.setdefault('OPENCV_LOG_LEVEL', 'FATAL')
