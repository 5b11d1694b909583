"""Integer programs: whole unknowns x with ``low <= A x <= high`` under published rows.

Every attack, protection and law asks one of four questions of them: whether there is a solution;
the least and the most of a form; one solution, or all; a weighted sum.
"""
