"""Small changes of the code with which a failing test passes: mutation-based fault localization.

A change that makes a failing test pass is more likely at the fault than elsewhere, most of all one with which the other
tests still pass (Papadakis and Le Traon, "Metallaxis-FL", 2015; for conditions: Zhang, Gupta and Gupta, "Locating
Faults through Automated Predicate Switching", 2006).
"""
