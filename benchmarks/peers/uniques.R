# A process with sdcMicro in it: a file of keys on the first line, then an answer for every line.
suppressPackageStartupMessages(library(sdcMicro))
asked <- file("stdin", "r")
keys <- read.csv(readLines(asked, 1))
while (length(readLines(asked, 1)) > 0) {
  counted <- freqCalc(keys, keyVars = seq_len(ncol(keys)))
  cat(sum(counted$fk == 1), "\n", sep = "")
  flush(stdout())
}
