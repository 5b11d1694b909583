"""The risk of a person under any protection: in closed form or by simulation."""
