"""The demo as a local web page: `python main/demo.py --serve`."""
