"""What was observed: alphabets, genetic codes, alignments, site patterns, sampling dates."""
