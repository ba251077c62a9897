"""What goes into the demo: images, videos and boxes."""
