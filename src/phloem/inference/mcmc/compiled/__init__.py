"""The compiled Metropolis-coupled sampler: records in inference/mcmc/records.py, entry run.advance."""
