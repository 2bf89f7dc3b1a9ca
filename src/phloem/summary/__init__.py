"""From samples to statements: consensus, clade credibility, ESS, R-hat, split frequencies, HPD."""
