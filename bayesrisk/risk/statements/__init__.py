"""What an attack says about people, each with a prior, a posterior and the truth."""
