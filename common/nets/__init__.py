"""The network: backbones, lixel heads, the joint-to-feature bridge, the parameter regressor, and the losses."""
