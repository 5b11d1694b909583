"""Integer programs: whole unknowns x with ``low <= A x <= high`` under published rows.

Attacks, protections and laws ask four questions: existence of a solution; the range of a linear
form; one solution, or all of them; the value of a weighted sum.
"""
