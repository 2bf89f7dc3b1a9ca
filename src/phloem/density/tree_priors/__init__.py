"""Densities of dated trees, one a file; a file that defines PRIOR and density joins by existing."""
