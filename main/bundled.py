"""The networks and images that ship with the programs."""
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = ROOT / 'main' / 'embedded' / 'nano.pth.tar'
SAMPLES = ROOT / 'data' / 'Synthetic' / 'samples'
HAND_SNAPSHOT = ROOT / 'main' / 'embedded' / 'nano_hand.pth.tar'
HAND_SAMPLES = ROOT / 'data' / 'Synthetic' / 'hand_samples'
