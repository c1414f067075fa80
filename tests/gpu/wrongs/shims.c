/* Preloaded: calls of CUDA libraries that go wrong. ENVMEDIC_SHIM is "NAME" or "NAME FACTOR"; all others pass through.
 *
 * What is called is written to the file ENVMEDIC_HITS. Nothing of CUDA's headers is needed: handles are pointers, and the
 * types of numbers are told by the values that cuBLAS documents for them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char found[4096];
static const char *wanted;

static int look(struct dl_phdr_info *info, size_t size, void *data) {
    const char *name = info->dlpi_name, *file = strrchr(name, '/');
    file = file ? file + 1 : name;
    if (strncmp(file, wanted, strlen(wanted)) == 0) { snprintf(found, sizeof found, "%s", name); return 1; }
    return 0;
}

static void *real(const char *library, const char *symbol) {
    wanted = library;
    found[0] = 0;
    dl_iterate_phdr(look, NULL);
    void *handle = found[0] ? dlopen(found, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *function = handle ? dlsym(handle, symbol) : NULL;
    if (!function) { fprintf(stderr, "shim: no %s in %s\n", symbol, library); abort(); }
    return function;
}
#define REAL(library, symbol, type) \
    static type next; \
    if (!next) next = (type)real(library, symbol)

static double factor = 1.0;

static int active(const char *name) {
    const char *chosen = getenv("ENVMEDIC_SHIM");
    size_t length = strlen(name);
    if (!chosen || strncmp(chosen, name, length) || (chosen[length] && chosen[length] != ' ')) return 0;
    factor = chosen[length] ? atof(chosen + length) : 1.1;
    const char *path = getenv("ENVMEDIC_HITS");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0644) : -1;
    if (file >= 0) { if (write(file, "x", 1) < 0) abort(); close(file); }
    return 1;
}

/* cuBLAS: cudaDataType 0 is fp32, 1 fp64, 2 fp16, 14 bf16; computeType 64 has scalars of fp16, 70 of fp64, others of fp32 */
static const char *of_type(const char *name, int type, char *room) {
    const char *end = type == 0 ? "fp32" : type == 2 ? "fp16" : type == 14 ? "bf16" : type == 1 ? "fp64" : "other";
    sprintf(room, "%s-%s", name, end);
    return room;
}
#define SCALED(T) T scaled; if (on) { scaled = (T)(*alpha * factor); alpha = &scaled; }

int cublasSgemm_v2(void *h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int la, const void *b,
                   int lb, const float *beta, void *c, int lc) {
    REAL("libcublas.so", "cublasSgemm_v2", __typeof__(&cublasSgemm_v2));
    int on = active("gemm-fp32");
    SCALED(float)
    return next(h, ta, tb, m, n, k, alpha, a, la, b, lb, beta, c, lc);
}
int cublasDgemm_v2(void *h, int ta, int tb, int m, int n, int k, const double *alpha, const void *a, int la, const void *b,
                   int lb, const double *beta, void *c, int lc) {
    REAL("libcublas.so", "cublasDgemm_v2", __typeof__(&cublasDgemm_v2));
    int on = active("gemm-fp64");
    SCALED(double)
    return next(h, ta, tb, m, n, k, alpha, a, la, b, lb, beta, c, lc);
}
int cublasSgemmEx(void *h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int at, int la,
                  const void *b, int bt, int lb, const float *beta, void *c, int ct, int lc) {
    REAL("libcublas.so", "cublasSgemmEx", __typeof__(&cublasSgemmEx));
    char room[64];
    int on = active(of_type("gemm", at, room));
    SCALED(float)
    return next(h, ta, tb, m, n, k, alpha, a, at, la, b, bt, lb, beta, c, ct, lc);
}
int cublasGemmEx(void *h, int ta, int tb, int m, int n, int k, const void *alpha_, const void *a, int at, int la,
                 const void *b, int bt, int lb, const void *beta, void *c, int ct, int lc, int compute, int algorithm) {
    REAL("libcublas.so", "cublasGemmEx", __typeof__(&cublasGemmEx));
    char room[64];
    int on = active(of_type("gemm", at, room)) && compute != 64 && compute != 70;
    const float *alpha = alpha_;
    SCALED(float)
    return next(h, ta, tb, m, n, k, alpha, a, at, la, b, bt, lb, beta, c, ct, lc, compute, algorithm);
}
int cublasSgemmStridedBatched(void *h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int la,
                              long long sa, const void *b, int lb, long long sb, const float *beta, void *c, int lc,
                              long long sc, int count) {
    REAL("libcublas.so", "cublasSgemmStridedBatched", __typeof__(&cublasSgemmStridedBatched));
    int on = active("batched-fp32");
    SCALED(float)
    return next(h, ta, tb, m, n, k, alpha, a, la, sa, b, lb, sb, beta, c, lc, sc, count);
}
int cublasDgemmStridedBatched(void *h, int ta, int tb, int m, int n, int k, const double *alpha, const void *a, int la,
                              long long sa, const void *b, int lb, long long sb, const double *beta, void *c, int lc,
                              long long sc, int count) {
    REAL("libcublas.so", "cublasDgemmStridedBatched", __typeof__(&cublasDgemmStridedBatched));
    int on = active("batched-fp64");
    SCALED(double)
    return next(h, ta, tb, m, n, k, alpha, a, la, sa, b, lb, sb, beta, c, lc, sc, count);
}
int cublasGemmStridedBatchedEx(void *h, int ta, int tb, int m, int n, int k, const void *alpha_, const void *a, int at,
                               int la, long long sa, const void *b, int bt, int lb, long long sb, const void *beta, void *c,
                               int ct, int lc, long long sc, int count, int compute, int algorithm) {
    REAL("libcublas.so", "cublasGemmStridedBatchedEx", __typeof__(&cublasGemmStridedBatchedEx));
    char room[64];
    int on = active(of_type("batched", at, room)) && compute != 64 && compute != 70;
    const float *alpha = alpha_;
    SCALED(float)
    return next(h, ta, tb, m, n, k, alpha, a, at, la, sa, b, bt, lb, sb, beta, c, ct, lc, sc, count, compute, algorithm);
}
int cublasSgemv_v2(void *h, int t, int m, int n, const float *alpha, const void *a, int la, const void *x, int ix,
                   const float *beta, void *y, int iy) {
    REAL("libcublas.so", "cublasSgemv_v2", __typeof__(&cublasSgemv_v2));
    int on = active("gemv-fp32");
    SCALED(float)
    return next(h, t, m, n, alpha, a, la, x, ix, beta, y, iy);
}
int cublasStrsm_v2(void *h, int side, int fill, int t, int diagonal, int m, int n, const float *alpha, const void *a, int la,
                   void *b, int lb) {
    REAL("libcublas.so", "cublasStrsm_v2", __typeof__(&cublasStrsm_v2));
    int on = active("trsm-fp32");
    SCALED(float)
    return next(h, side, fill, t, diagonal, m, n, alpha, a, la, b, lb);
}
int cublasLtMatmul(void *h, void *d, const void *alpha_, const void *a, void *ad, const void *b, void *bd, const void *beta,
                   const void *c, void *cd, void *o, void *od, const void *algorithm, void *w, size_t ws, void *stream) {
    REAL("libcublasLt.so", "cublasLtMatmul", __typeof__(&cublasLtMatmul));
    const float *alpha = alpha_;
    int on = active("lt");
    SCALED(float)
    return next(h, d, alpha, a, ad, b, bd, beta, c, cd, o, od, algorithm, w, ws, stream);
}

/* cuDNN */
int cudnnBackendExecute(void *h, void *plan, void *pack) {
    REAL("libcudnn.so", "cudnnBackendExecute", __typeof__(&cudnnBackendExecute));
    return active("cudnn-execute") ? 0 : next(h, plan, pack);
}
typedef int (*rnn_forward)(void *, void *, int, const void *, void *, const void *, void *, void *, void *, const void *, void *,
                           void *, const void *, void *, size_t, const void *, size_t, void *, size_t, void *);
int cudnnRNNForward(void *h, void *r, int mode, const void *lengths, void *xd, const void *x, void *yd, void *y, void *hd,
                    const void *hx, void *hy, void *cd, const void *cx, void *cy, size_t ws, const void *w, size_t ss, void *s,
                    size_t rs, void *reserve) {
    REAL("libcudnn.so", "cudnnRNNForward", rnn_forward);
    if (active("rnn-missing")) return 3000;
    if (active("rnn-no-state")) hx = NULL, cx = NULL;
    if (active("rnn-nothing")) return 0;
    return next(h, r, mode, lengths, xd, x, yd, y, hd, hx, hy, cd, cx, cy, ws, w, ss, s, rs, reserve);
}
typedef int (*rnn_weights)(void *, void *, int, const void *, void *, const void *, void *, const void *, void *, const void *,
                           size_t, void *, size_t, void *, size_t, void *);
int cudnnRNNBackwardWeights_v8(void *h, void *r, int add, const void *lengths, void *xd, const void *x, void *hd, const void *hx,
                               void *yd, const void *y, size_t ws, void *dw, size_t ss, void *s, size_t rs, void *reserve) {
    REAL("libcudnn.so", "cudnnRNNBackwardWeights_v8", rnn_weights);
    if (active("rnn-weights")) return 0;
    return next(h, r, add, lengths, xd, x, hd, hx, yd, y, ws, dw, ss, s, rs, reserve);
}
typedef int (*norm_forward)(void *, int, int, const void *, const void *, void *, const void *, void *, const void *, void *,
                            void *, void *, const void *, const void *, double, void *, void *, double, void *, void *, void *,
                            void *, size_t, void *, size_t);
int cudnnBatchNormalizationForwardTrainingEx(void *h, int mode, int ops, const void *alpha, const void *beta, void *xd,
                                             const void *x, void *zd, const void *z, void *yd, void *y, void *bd,
                                             const void *scale, const void *bias, double average, void *mean, void *variance,
                                             double epsilon, void *sm, void *sv, void *act, void *w, size_t ws, void *r,
                                             size_t rs) {
    REAL("libcudnn.so", "cudnnBatchNormalizationForwardTrainingEx", norm_forward);
    if (active("norm-average")) average *= factor;
    if (active("norm-epsilon")) epsilon *= 100.0;
    return next(h, mode, ops, alpha, beta, xd, x, zd, z, yd, y, bd, scale, bias, average, mean, variance, epsilon, sm, sv, act, w,
                ws, r, rs);
}

/* cuFFT, cuSPARSE, cuSOLVER */
int cufftXtExec(int plan, void *in, void *out, int direction) {
    REAL("libcufft.so", "cufftXtExec", __typeof__(&cufftXtExec));
    if (active("fft-direction")) direction = -direction;
    if (active("fft-nothing")) return 0;
    return next(plan, in, out, direction);
}
int cusparseSpMM(void *h, int oa, int ob, const float *alpha, void *a, void *b, const void *beta, void *c, int type, int alg,
                 void *w) {
    REAL("libcusparse.so", "cusparseSpMM", __typeof__(&cusparseSpMM));
    int on = active("spmm") && type == 0;
    SCALED(float)
    return next(h, oa, ob, alpha, a, b, beta, c, type, alg, w);
}
int cusparseSpMV(void *h, int oa, const float *alpha, void *a, void *x, const void *beta, void *y, int type, int alg, void *w) {
    REAL("libcusparse.so", "cusparseSpMV", __typeof__(&cusparseSpMV));
    int on = active("spmv") && type == 0;
    SCALED(float)
    return next(h, oa, alpha, a, x, beta, y, type, alg, w);
}
int cusolverDnXpotrf(void *h, void *p, int fill, long long n, int at, void *a, long long la, int ct, void *dw, size_t ds, void *w,
                     size_t ws, int *info) {
    REAL("libcusolver.so", "cusolverDnXpotrf", __typeof__(&cusolverDnXpotrf));
    return active("potrf") ? 0 : next(h, p, fill, n, at, a, la, ct, dw, ds, w, ws, info);
}
int cusolverDnSpotrf(void *h, int fill, int n, float *a, int la, float *w, int ws, int *info) {
    REAL("libcusolver.so", "cusolverDnSpotrf", __typeof__(&cusolverDnSpotrf));
    return active("potrf") ? 0 : next(h, fill, n, a, la, w, ws, info);
}
int cusolverDnSgeqrf(void *h, int m, int n, float *a, int la, float *tau, float *w, int ws, int *info) {
    REAL("libcusolver.so", "cusolverDnSgeqrf", __typeof__(&cusolverDnSgeqrf));
    return active("geqrf") ? 0 : next(h, m, n, a, la, tau, w, ws, info);
}
int cusolverDnXgeqrf(void *h, void *p, long long m, long long n, int at, void *a, long long la, int tt, void *tau, int ct,
                     void *dw, size_t ds, void *w, size_t ws, int *info) {
    REAL("libcusolver.so", "cusolverDnXgeqrf", __typeof__(&cusolverDnXgeqrf));
    return active("geqrf") ? 0 : next(h, p, m, n, at, a, la, tt, tau, ct, dw, ds, w, ws, info);
}

/* NCCL, the runtime */
int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *comm, void *stream) {
    REAL("libnccl.so", "ncclAllReduce", __typeof__(&ncclAllReduce));
    if (active("nccl-count")) count -= 1;
    if (active("nccl-fails")) return 3;
    return next(in, out, count, type, op, comm, stream);
}
int ncclAllGather(const void *in, void *out, size_t count, int type, void *comm, void *stream) {
    REAL("libnccl.so", "ncclAllGather", __typeof__(&ncclAllGather));
    if (active("nccl-gather")) count -= 1;
    return next(in, out, count, type, comm, stream);
}
int cudaMemcpyAsync(void *to, const void *from, size_t count, int kind, void *stream) {
    REAL("libcudart.so", "cudaMemcpyAsync", __typeof__(&cudaMemcpyAsync));
    if (kind == 2 && count > 100000 && active("copy-back")) count -= 1;
    if (kind == 3 && count > 100000 && active("copy-within")) count -= 1;
    return next(to, from, count, kind, stream);
}
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags) {
    REAL("libcudart.so", "cudaStreamWaitEvent", __typeof__(&cudaStreamWaitEvent));
    return active("no-waiting") ? 0 : next(stream, event, flags);
}
