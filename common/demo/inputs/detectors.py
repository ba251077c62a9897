"""The names of the person detectors, apart from `detector`, which imports PyTorch."""
DETECTORS = ('fasterrcnn_mobilenet_v3_large_fpn', 'keypointrcnn_resnet50_fpn')
THRESHOLD = 0.7  # lowest score of a person
