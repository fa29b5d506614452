"""One module a file format: a `Source` goes in, a `Table` of named columns or the `Matrices` of a file come out."""
