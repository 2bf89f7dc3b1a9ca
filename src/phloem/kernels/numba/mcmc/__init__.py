"""The compiled Metropolis-coupled sampler: records in phloem/kernels/mcmc_records.py, entry run.advance."""
