"""Text to records and back: FASTA, PHYLIP, NEXUS, Newick, logs and trees of other programs."""
