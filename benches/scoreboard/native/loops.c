// Loops as a compiler of sparse tensor algebra emits them (TACO's loops, written anew): what is stored is merged by branches, dense rows of results
// are read and written for each entry, and sparse results are assembled first and computed afterwards. Loops over rows with dense results run on several threads.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PARALLEL _Pragma("omp parallel for schedule(dynamic, 256)")
#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))

void spmv(int64_t rows, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict val,
          const double *restrict x, double *restrict y) {
    PARALLEL
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int32_t p = pos[i]; p < pos[i + 1]; p++)
            sum += val[p] * x[crd[p]];
        y[i] = sum;
    }
}

void spmv_csc(int64_t rows, int64_t columns, const int32_t *restrict pos, const int32_t *restrict crd,
              const double *restrict val, const double *restrict x, double *restrict y) {
    memset(y, 0, (size_t)rows * sizeof *y);
    for (int64_t j = 0; j < columns; j++)
        for (int32_t p = pos[j]; p < pos[j + 1]; p++)
            y[crd[p]] += val[p] * x[j];
}

#define SPMM(name, number)                                                                                             \
    void name(int64_t rows, int64_t n, const int32_t *restrict pos, const int32_t *restrict crd,                       \
              const number *restrict val, const number *restrict b, number *restrict c) {                              \
        memset(c, 0, (size_t)(rows * n) * sizeof *c);                                                                  \
        PARALLEL                                                                                                       \
        for (int64_t i = 0; i < rows; i++)                                                                             \
            for (int32_t p = pos[i]; p < pos[i + 1]; p++) {                                                            \
                int64_t j = crd[p];                                                                                    \
                for (int64_t k = 0; k < n; k++)                                                                        \
                    c[i * n + k] += val[p] * b[j * n + k];                                                             \
            }                                                                                                          \
    }
SPMM(spmm_f32, float)
SPMM(spmm_f64, double)

void sddmm(int64_t rows, int64_t n, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict s,
           const double *restrict a, const double *restrict b, double *restrict x) {
    PARALLEL
    for (int64_t i = 0; i < rows; i++)
        for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
            int64_t j = crd[p];
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += s[p] * a[i * n + k] * b[j * n + k];
            x[p] = sum;
        }
}

void mttkrp(int64_t rows, int64_t r, const int32_t *restrict pos0, const int32_t *restrict crd0,
            const int32_t *restrict pos1, const int32_t *restrict crd1, const int32_t *restrict pos2,
            const int32_t *restrict crd2, const double *restrict val, const double *restrict c,
            const double *restrict d, double *restrict a) {
    memset(a, 0, (size_t)(rows * r) * sizeof *a);
    _Pragma("omp parallel for schedule(dynamic, 8)")
    for (int32_t q0 = pos0[0]; q0 < pos0[1]; q0++) {
        int64_t i = crd0[q0];
        for (int32_t q1 = pos1[q0]; q1 < pos1[q0 + 1]; q1++) {
            int64_t k = crd1[q1];
            for (int32_t q2 = pos2[q1]; q2 < pos2[q1 + 1]; q2++) {
                int64_t l = crd2[q2];
                for (int64_t j = 0; j < r; j++)
                    a[i * r + j] += val[q2] * d[l * r + j] * c[k * r + j];
            }
        }
    }
}

// One value, or one row of r values, for each fiber along the last dimension that has an entry.
void ttv(int64_t fibers, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict val,
         const double *restrict x, double *restrict y) {
    for (int64_t f = 0; f < fibers; f++) {
        double sum = 0;
        for (int32_t p = pos[f]; p < pos[f + 1]; p++)
            sum += val[p] * x[crd[p]];
        y[f] = sum;
    }
}

void ttm(int64_t fibers, int64_t r, const int32_t *restrict pos, const int32_t *restrict crd,
         const double *restrict val, const double *restrict c, double *restrict y) {
    memset(y, 0, (size_t)(fibers * r) * sizeof *y);
    for (int64_t f = 0; f < fibers; f++)
        for (int32_t p = pos[f]; p < pos[f + 1]; p++) {
            int64_t k = crd[p];
            for (int64_t l = 0; l < r; l++)
                y[f * r + l] += val[p] * c[k * r + l];
        }
}

// Sparse results are written to arrays of the maximum capacity.
int64_t add(int64_t rows, const int32_t *restrict ap, const int32_t *restrict ac, const double *restrict av,
            const int32_t *restrict bp, const int32_t *restrict bc, const double *restrict bv, int32_t *restrict cp,
            int32_t *restrict cc, double *restrict cv) {
    int32_t at = 0;
    cp[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t p = ap[i], p_end = ap[i + 1], q = bp[i], q_end = bp[i + 1];
        while (p < p_end && q < q_end) {
            int32_t pj = ac[p], qj = bc[q], j = MINIMUM(pj, qj);
            if (pj == j && qj == j)
                cv[at] = av[p] + bv[q];
            else if (pj == j)
                cv[at] = av[p];
            else
                cv[at] = bv[q];
            cc[at++] = j;
            p += pj == j;
            q += qj == j;
        }
        for (; p < p_end; p++) {
            cv[at] = av[p];
            cc[at++] = ac[p];
        }
        for (; q < q_end; q++) {
            cv[at] = bv[q];
            cc[at++] = bc[q];
        }
        cp[i + 1] = at;
    }
    return at;
}

static int32_t add_pair(int32_t p, int32_t p_end, const int32_t *restrict ac, const double *restrict av, int32_t q,
                        int32_t q_end, const int32_t *restrict bc, const double *restrict bv, int32_t at,
                        int32_t *restrict cc, double *restrict cv) {
    while (p < p_end && q < q_end) {
        int32_t pj = ac[p], qj = bc[q], j = MINIMUM(pj, qj);
        cv[at] = pj == j && qj == j ? av[p] + bv[q] : pj == j ? av[p] : bv[q];
        cc[at++] = j;
        p += pj == j;
        q += qj == j;
    }
    for (; p < p_end; p++) {
        cv[at] = av[p];
        cc[at++] = ac[p];
    }
    for (; q < q_end; q++) {
        cv[at] = bv[q];
        cc[at++] = bc[q];
    }
    return at;
}

// The lattice of three operands: all, then two, then one.
int64_t add_three(int64_t rows, const int32_t *restrict ap, const int32_t *restrict ac, const double *restrict av,
                  const int32_t *restrict bp, const int32_t *restrict bc, const double *restrict bv,
                  const int32_t *restrict dp, const int32_t *restrict dc, const double *restrict dv,
                  int32_t *restrict cp, int32_t *restrict cc, double *restrict cv) {
    int32_t at = 0;
    cp[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t p = ap[i], p_end = ap[i + 1], q = bp[i], q_end = bp[i + 1], r = dp[i], r_end = dp[i + 1];
        while (p < p_end && q < q_end && r < r_end) {
            int32_t pj = ac[p], qj = bc[q], rj = dc[r], j = MINIMUM(pj, MINIMUM(qj, rj));
            if (pj == j && qj == j && rj == j)
                cv[at] = av[p] + bv[q] + dv[r];
            else if (pj == j && qj == j)
                cv[at] = av[p] + bv[q];
            else if (pj == j && rj == j)
                cv[at] = av[p] + dv[r];
            else if (qj == j && rj == j)
                cv[at] = bv[q] + dv[r];
            else if (pj == j)
                cv[at] = av[p];
            else if (qj == j)
                cv[at] = bv[q];
            else
                cv[at] = dv[r];
            cc[at++] = j;
            p += pj == j;
            q += qj == j;
            r += rj == j;
        }
        if (r == r_end)
            at = add_pair(p, p_end, ac, av, q, q_end, bc, bv, at, cc, cv);
        else if (q == q_end)
            at = add_pair(p, p_end, ac, av, r, r_end, dc, dv, at, cc, cv);
        else
            at = add_pair(q, q_end, bc, bv, r, r_end, dc, dv, at, cc, cv);
        cp[i + 1] = at;
    }
    return at;
}

int64_t multiply(int64_t rows, const int32_t *restrict ap, const int32_t *restrict ac, const double *restrict av,
                 const int32_t *restrict bp, const int32_t *restrict bc, const double *restrict bv,
                 int32_t *restrict cp, int32_t *restrict cc, double *restrict cv) {
    int32_t at = 0;
    cp[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t p = ap[i], p_end = ap[i + 1], q = bp[i], q_end = bp[i + 1];
        while (p < p_end && q < q_end) {
            int32_t pj = ac[p], qj = bc[q], j = MINIMUM(pj, qj);
            if (pj == j && qj == j) {
                cv[at] = av[p] * bv[q];
                cc[at++] = j;
            }
            p += pj == j;
            q += qj == j;
        }
        cp[i + 1] = at;
    }
    return at;
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

// Row by row through a dense workspace: the columns of each row are found and sorted, then the values are computed. Gives -1 without memory.
int64_t spgemm(int64_t rows, int64_t columns, const int32_t *restrict ap, const int32_t *restrict ac,
               const double *restrict av, const int32_t *restrict bp, const int32_t *restrict bc,
               const double *restrict bv, int32_t *restrict cp, int32_t *restrict cc, double *restrict cv) {
    double *w = calloc((size_t)columns, sizeof *w);
    char *set = calloc((size_t)columns, 1);
    int32_t at = 0;
    if (!w || !set) {
        free(w);
        free(set);
        return -1;
    }
    cp[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t start = at;
        for (int32_t p = ap[i]; p < ap[i + 1]; p++)
            for (int32_t q = bp[ac[p]]; q < bp[ac[p] + 1]; q++)
                if (!set[bc[q]]) {
                    set[bc[q]] = 1;
                    cc[at++] = bc[q];
                }
        qsort(cc + start, (size_t)(at - start), sizeof *cc, ascending);
        for (int32_t t = start; t < at; t++)
            set[cc[t]] = 0;
        cp[i + 1] = at;
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int32_t p = ap[i]; p < ap[i + 1]; p++)
            for (int32_t q = bp[ac[p]]; q < bp[ac[p] + 1]; q++)
                w[bc[q]] += av[p] * bv[q];
        for (int32_t t = cp[i]; t < cp[i + 1]; t++) {
            cv[t] = w[cc[t]];
            w[cc[t]] = 0;
        }
    }
    free(w);
    free(set);
    return at;
}
