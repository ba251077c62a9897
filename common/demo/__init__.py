"""The parts of `main/demo.py`, each of which knows those before it alone.

`inputs`: images, videos, boxes and the detector. `people`: the network's answers, placed in camera space,
tracked and smoothed. `outputs`: the files written. `pipeline`: the three in one piece, for `image_run`,
`video_run` and the page in `web`.
"""
