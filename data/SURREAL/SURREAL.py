"""SURREAL: rendered people; tool/SURREAL/convert.py gives the official clips the layout of 3DPW."""
from data.PW3D.PW3D import PW3D


class SURREAL(PW3D):
    stem = 'SURREAL'
    suspect = 'data/SURREAL_*.json'
    rootnet = None
