"""The parts of `main/demo.py`.

`inputs`: images, videos, boxes and the detector. `people`: the network's answers, placed in camera space, tracked and
smoothed. `outputs`: the files written. `web`: the page. `image_run` and `video_run` put them together.
"""
