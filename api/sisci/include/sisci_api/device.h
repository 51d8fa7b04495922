/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file device.h
 * Devices that nodes lend each other. Nothing here lends one: each function looks at its flags and answers SCI_ERR_NOT_SUPPORTED. Where
 * no published text gives the parameters, they are this project's.
 */
#ifndef SISCI_API_DEVICE_H
#define SISCI_API_DEVICE_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCIBorrowDevice _SISCI_EXPANDE_FUNCTION_NAME(SCIBorrowDevice)
#define SCIReturnDevice _SISCI_EXPANDE_FUNCTION_NAME(SCIReturnDevice)
#define SCIReleaseExclusiveBorrow _SISCI_EXPANDE_FUNCTION_NAME(SCIReleaseExclusiveBorrow)
#define SCICreateDeviceSegment _SISCI_EXPANDE_FUNCTION_NAME(SCICreateDeviceSegment)
#define SCIConnectDeviceSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIConnectDeviceSegment)
#define SCIConnectDeviceSegmentPath _SISCI_EXPANDE_FUNCTION_NAME(SCIConnectDeviceSegmentPath)
#define SCIConnectDeviceMemory _SISCI_EXPANDE_FUNCTION_NAME(SCIConnectDeviceMemory)
#define SCIMapLocalSegmentForDevice _SISCI_EXPANDE_FUNCTION_NAME(SCIMapLocalSegmentForDevice)
#define SCIUnmapLocalSegmentForDevice _SISCI_EXPANDE_FUNCTION_NAME(SCIUnmapLocalSegmentForDevice)
#define SCIMapRemoteSegmentForDevice _SISCI_EXPANDE_FUNCTION_NAME(SCIMapRemoteSegmentForDevice)
#define SCIUnmapRemoteSegmentForDevice _SISCI_EXPANDE_FUNCTION_NAME(SCIUnmapRemoteSegmentForDevice)
#define SCIGetDeviceList _SISCI_EXPANDE_FUNCTION_NAME(SCIGetDeviceList)
#define SCIGetFabricDeviceId _SISCI_EXPANDE_FUNCTION_NAME(SCIGetFabricDeviceId)

/** The number of a device in the fabric. C of 1989 and C++ of 1998 have no `long long`, and a type of its size. */
#if defined(__cplusplus) && __cplusplus < 201103L
typedef uint64_t sci_fdid_t;
#else
#ifdef __GNUC__
__extension__
#endif
typedef unsigned long long sci_fdid_t;
#endif

/** Borrows a device by its number in the fabric. Flags: SCI_FLAG_EXCLUSIVE. */
void SCIBorrowDevice(sci_desc_t sd, sci_device_t *device, sci_fdid_t fdid, unsigned int flags,
                     sci_error_t *error);

/** Gives a device back. */
void SCIReturnDevice(sci_device_t device, unsigned int flags, sci_error_t *error);

/** Lets others borrow a device that was borrowed exclusively. */
void SCIReleaseExclusiveBorrow(sci_device_t device, unsigned int flags, sci_error_t *error);

/**
 * Makes a segment near a device.
 *
 * Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_AUTO_ID, SCI_FLAG_DEVICE_SIDE_ONLY, SCI_FLAG_LOCAL_ONLY.
 */
void SCICreateDeviceSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId, sci_device_t device,
                            size_t size, unsigned int access, sci_cb_local_segment_t callback, void *arg,
                            unsigned int flags, sci_error_t *error);

/** Connects to memory of a device. Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_SPECIFY_PATH. */
void SCIConnectDeviceSegment(sci_desc_t sd, sci_remote_segment_t *segment, sci_device_t device, unsigned int memId,
                             unsigned int memType, sci_cb_remote_segment_t callback, void *arg, unsigned int flags,
                             sci_error_t *error);

/** Connects to memory of a device through an adapter. Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_SPECIFY_PATH. */
void SCIConnectDeviceSegmentPath(sci_desc_t sd, sci_remote_segment_t *segment, sci_device_t device, unsigned int memId,
                                 unsigned int memType, unsigned int localAdapterNo, sci_cb_remote_segment_t callback,
                                 void *arg, unsigned int flags, sci_error_t *error);

/** Is the older name of SCIConnectDeviceSegment(). Flags: SCI_FLAG_USE_CALLBACK. */
void SCIConnectDeviceMemory(sci_desc_t sd, sci_remote_segment_t *segment, sci_device_t device, unsigned int memId,
                            unsigned int memType, sci_cb_remote_segment_t callback, void *arg, unsigned int flags,
                            sci_error_t *error);

/** Gives the address at which a device sees a local segment. */
void SCIMapLocalSegmentForDevice(sci_local_segment_t segment, sci_device_t device, sci_ioaddr_t *ioaddress,
                                 unsigned int flags, sci_error_t *error);

/** Undoes SCIMapLocalSegmentForDevice(). */
void SCIUnmapLocalSegmentForDevice(sci_local_segment_t segment, sci_device_t device, unsigned int flags,
                                   sci_error_t *error);

/** Gives the address at which a device sees a remote segment. */
void SCIMapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_device_t device, sci_ioaddr_t *ioaddress,
                                  unsigned int flags, sci_error_t *error);

/** Undoes SCIMapRemoteSegmentForDevice(). */
void SCIUnmapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_device_t device, unsigned int flags,
                                    sci_error_t *error);

/** Lists the devices that can be borrowed: at most `length` numbers, and how many there are. */
void SCIGetDeviceList(sci_desc_t sd, sci_fdid_t *fdids, unsigned int length, unsigned int *count,
                      unsigned int flags, sci_error_t *error);

/** Returns the number of a device in the fabric; 0 where there is none. */
sci_fdid_t SCIGetFabricDeviceId(sci_device_t device, unsigned int flags, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif
