/* An NVML with two GPUs, for the real binding: the first is sick in every way, the second is sound and has no NVLink. */
#include <string.h>
typedef struct { int index; } Device;
static Device devices[2] = {{0}, {1}};
#define SICK (d->index == 0)
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned f) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int e) { return "Not Supported"; }
int nvmlSystemGetDriverVersion(char *v, unsigned n) { strcpy(v, "580.65.06"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, Device **d) { *d = &devices[i]; return 0; }
int nvmlDeviceGetName(Device *d, char *v, unsigned n) { strcpy(v, "NVIDIA Test"); return 0; }
int nvmlDeviceGetUUID(Device *d, char *v, unsigned n) { strcpy(v, SICK ? "GPU-0" : "GPU-1"); return 0; }
int nvmlDeviceGetCudaComputeCapability(Device *d, int *a, int *b) { *a = 9; *b = 0; return 0; }
int nvmlDeviceGetEccMode(Device *d, unsigned *a, unsigned *b) { *a = *b = !SICK; return 0; }
int nvmlDeviceGetTotalEccErrors(Device *d, int kind, int counter, unsigned long long *n) {
    *n = SICK ? (kind == 1 ? (counter ? 9 : 3) : 5) : 0;
    return 0;
}
int nvmlDeviceGetRemappedRows(Device *d, unsigned *c, unsigned *u, unsigned *p, unsigned *f) {
    *c = 0, *u = SICK ? 2 : 0, *p = SICK, *f = 0;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, unsigned long long *r) { *r = SICK ? 0x41 : 0x5; return 0; }
int nvmlDeviceGetTemperature(Device *d, int s, unsigned *t) { *t = SICK ? 88 : 35; return 0; }
int nvmlDeviceGetTemperatureThreshold(Device *d, int s, unsigned *t) { *t = 90; return 0; }
int nvmlDeviceGetPowerUsage(Device *d, unsigned *m) { *m = 70500; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(Device *d, unsigned *m) { *m = 700000; return 0; }
int nvmlDeviceGetClockInfo(Device *d, int k, unsigned *m) { *m = k == 2 ? 2619 : 345; return 0; }
int nvmlDeviceGetMaxClockInfo(Device *d, int k, unsigned *m) { *m = k == 2 ? 2619 : 1980; return 0; }
int nvmlDeviceGetMemoryBusWidth(Device *d, unsigned *w) { *w = 5120; return 0; }
int nvmlDeviceGetCurrPcieLinkGeneration(Device *d, unsigned *g) { *g = SICK ? 1 : 5; return 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(Device *d, unsigned *g) { *g = 5; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(Device *d, unsigned *g) { *g = SICK ? 8 : 16; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(Device *d, unsigned *g) { *g = 16; return 0; }
int nvmlDeviceGetPcieReplayCounter(Device *d, unsigned *n) { *n = 0; return 0; }
int nvmlDeviceGetComputeMode(Device *d, int *m) { *m = SICK ? 3 : 0; return 0; }
int nvmlDeviceGetMigMode(Device *d, unsigned *a, unsigned *b) { *a = *b = SICK; return 0; }
int nvmlDeviceGetNvLinkState(Device *d, unsigned l, int *up) { *up = l != 3; return SICK && l < 4 ? 0 : 3; }
int nvmlDeviceGetNvLinkErrorCounter(Device *d, unsigned l, int k, unsigned long long *n) { *n = l == 1 && k == 0 ? 7 : 0; return 0; }
