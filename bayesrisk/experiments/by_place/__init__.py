"""Data sets by place, made part by part: a nation, and the tables of one."""
