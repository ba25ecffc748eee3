# Rscript experiments/proper.R DATA mice.csv [REPS [FIRST]]
#
# mice's methods norm and pmm on the tables that `experiments/proper.py --write DATA` wrote, 20 imputations each; the
# estimates as proper.py writes its own, for proper.py --mice. Lines are added to the file cell after cell, so that what
# is there can be read at any time.
suppressPackageStartupMessages(library(mice))

M <- 20
argument <- commandArgs(TRUE)
data <- argument[1]
out <- argument[2]
reps <- if (length(argument) > 2) as.integer(argument[3]) else 300L
first <- if (length(argument) > 3) as.integer(argument[4]) else 0L

# Rubin's rules, degrees of freedom by Barnard and Rubin: as pool() of proper.py.
pooled <- function(q, v, df_complete) {
  between <- var(q)
  total <- mean(v) + (1 + 1 / M) * between
  share <- max((1 + 1 / M) * between / total, 1e-9)
  old <- (M - 1) / share^2
  seen <- (df_complete + 1) / (df_complete + 3) * df_complete * (1 - share)
  df <- old * seen / (old + seen)
  r <- share / (1 - share)
  c(mean(q), sqrt(total), df, (r + 2 / (df + 3)) / (r + 1))
}

estimates <- function(t) {
  n <- nrow(t)
  fit <- summary(lm(y ~ x + z, t))$coefficients
  c(mean(t$y), var(t$y) / n, fit["x", 1], fit["x", 2]^2, atanh(cor(t$x, t$y)), 1 / (n - 3))
}

one <- function(t, method) {
  done <- mice(t, m = M, method = method, printFlag = FALSE, seed = 1)
  e <- sapply(seq_len(M), function(i) estimates(complete(done, i)))
  n <- nrow(t)
  rbind(pooled(e[1, ], e[2, ], n - 1), pooled(e[3, ], e[4, ], n - 3), pooled(e[5, ], e[6, ], n - 1))
}

if (!file.exists(out)) cat("cell,rep,method,estimand,estimate,se,df,fmi\n", file = out)
tables <- lapply(list.files(data, "[.]csv$", full.names = TRUE), read.csv)
names(tables) <- sub("[.]csv$", "", list.files(data, "[.]csv$"))
for (rep in first + seq_len(reps) - 1L)
  for (cell in names(tables)) {
    t <- tables[[cell]][tables[[cell]]$rep == rep, c("x", "z", "y")]
    if (nrow(t) == 0) next
    for (method in c("norm", "pmm")) {
      p <- one(t, method)
      cat(sprintf("%s,%d,%s,%s,%.10g,%.10g,%.10g,%.10g\n", cell, rep, method, c("mean", "slope", "correlation"), p[, 1], p[, 2], p[, 3], p[, 4]),
          sep = "", file = out, append = TRUE)
    }
  }
